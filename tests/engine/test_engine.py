"""Test the engine, in this process and on a real cluster of processes: the same results, errors and warnings."""

import os
import warnings

import numpy as np
import pytest

import tile_tasks
from normalmesh import NormalMeshError, NormalMeshWarning
from normalmesh.engine import workers as workers_module
from normalmesh.engine.engine import Engine
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.engine.work_folder import WorkFolder
from normalmesh.engine.workers import DaskWorkers, ThisProcess, started_workers
from normalmesh.runtime.monitor import Monitor
from normalmesh.runtime.threads import MAX_THREADS

NUMBERS = range(5)


@pytest.fixture(scope="module")
def started():
    pytest.importorskip("distributed")
    with started_workers(2, None, None, 8) as found:
        assert isinstance(found, DaskWorkers)
        yield found


@pytest.fixture
def cluster(started):
    """Return two processes of a local cluster, both of which run: a test before may have killed one."""
    started._client.wait_for_workers(2, timeout=60)
    return started


@pytest.fixture(params=["process", "cluster"])
def workers(request):
    return ThisProcess() if request.param == "process" else request.getfixturevalue("cluster")


@pytest.fixture
def folder(tmp_path):
    with WorkFolder(tmp_path / "work", {}) as made:
        yield made


@pytest.fixture
def notes(tmp_path):
    """Return an empty folder, which tasks write to."""
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


def contents(folder):
    return {path.relative_to(folder.path): path.read_bytes() for path in folder.path.rglob("*.arrays")}


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-9] ^= 4
    path.write_bytes(content)


def test_results_of_one_stage_are_arguments_of_the_next(folder, workers):
    engine = Engine(folder, workers)
    made = engine.run("squares", tile_tasks.squares, {(n, 0): (n,) for n in NUMBERS})
    assert list(made) == [(n, 0) for n in NUMBERS]
    np.testing.assert_array_equal(made[3, 0]["squares"], [0, 1, 4])
    assert made[3, 0].path.name == "3_0.arrays"
    assert (int(made[3, 0]["process"]) == os.getpid()) == isinstance(workers, ThisProcess)
    total = engine.run("total", tile_tasks.total, {"all": (list(made.values()),)})
    assert total["all"]["total"] == sum(n**2 for n in NUMBERS for n in range(n))
    assert set(engine.seconds) == {"squares", "total"}


def test_large_arguments_go_through_the_folder(folder, workers, recwarn):
    common = np.ones(2_000_000)
    arguments = LazyArguments(NUMBERS, lambda n: (common, {"x": np.full(1_000_000, n)}))
    made = Engine(folder, workers).run("difference", tile_tasks.difference, arguments)
    assert [made[n]["difference"][0] for n in NUMBERS] == [2e6 - n * 1e6 for n in NUMBERS]
    assert not list(folder.path.glob("shared/*"))
    assert not [str(each.message) for each in recwarn]


def test_what_is_there_is_not_done_again(folder, workers, notes):
    arguments = {n: (n, str(notes)) for n in NUMBERS}
    Engine(folder, workers).run("count", tile_tasks.counted, arguments)
    before = contents(folder)
    folder.result("count", 3).path.unlink()
    short, damaged = (folder.result("count", n).path for n in (1, 4))
    short.write_bytes(short.read_bytes()[:-1])
    flip_a_bit(damaged)
    Engine(folder, workers).run("count", tile_tasks.counted, arguments)
    assert contents(folder) == before
    assert sorted(path.name[0] for path in notes.iterdir()) == ["0", "1", "1", "2", "3", "3", "4", "4"]


def test_errors_keep_their_message_and_leave_what_is_done(folder, workers):
    engine = Engine(folder, workers)
    with (
        pytest.warns(NormalMeshWarning, match="odd numbers are odd") as issued,
        pytest.raises(NormalMeshError) as error,
    ):
        engine.run("refused", tile_tasks.refused, {n: (n,) for n in NUMBERS})
    assert len(issued) == 1
    assert str(error.value) == "two is refused: give another number"
    assert "in refused 2" in error.value.__notes__[0]
    assert folder.result("refused", 0).is_whole
    assert not folder.result("refused", 2).is_whole
    with pytest.raises(KeyError, match="0"):
        engine.run("broken", tile_tasks.broken, {0: (0,)})


def test_filters_of_warnings_are_as_before(folder):
    before = list(warnings.filters), warnings.showwarning
    with pytest.warns(NormalMeshWarning):
        Engine(folder).run("refused", tile_tasks.refused, {1: (1,)})
    assert (list(warnings.filters), warnings.showwarning) == before


def test_a_worker_that_is_killed_costs_its_task_only(folder, cluster, notes, tmp_path):
    arguments = {n: (n, str(notes), 2) for n in NUMBERS}
    Engine(folder, cluster).run("deadly", tile_tasks.deadly, arguments)
    assert len(list(notes.iterdir())) == 2
    with WorkFolder(tmp_path / "other", {}) as other:
        Engine(other).run("deadly", tile_tasks.deadly, arguments)
        assert contents(other) == contents(folder)


def test_a_task_that_kills_all_workers_ends_the_work(folder, cluster, notes, monkeypatch):
    monkeypatch.setattr(workers_module, "ANEW", 0)
    monkeypatch.setattr(cluster._client.cluster.scheduler, "allowed_failures", 1)
    with pytest.raises(NormalMeshError, match=r"every worker that tried deadly 2 died.*fewer workers"):
        Engine(folder, cluster).run("deadly", tile_tasks.deadly, {2: (2, str(notes), 99)})
    assert Engine(folder, cluster).run("squares", tile_tasks.squares, {1: (1,)})[1].is_whole


def test_cores_are_shared(folder, cluster):
    one = Engine(folder, cluster).run("one", tile_tasks.threads, {0: ()})
    assert int(one[0]["threads"]) == MAX_THREADS
    several = Engine(folder, cluster).run("several", tile_tasks.threads, dict.fromkeys(NUMBERS, ()))
    assert {int(each["threads"]) for each in several.values()} == {max(MAX_THREADS // 2, 1)}
    limited = Engine(folder, cluster, cores=1).run("limited", tile_tasks.threads, {0: ()})
    assert int(limited[0]["threads"]) == 1


def test_threads_of_a_worker_must_fit_into_its_memory(cluster, monkeypatch):
    small = {"name": "w", "host": "far", "nthreads": 4, "memory_limit": 4e9}
    monkeypatch.setattr(DaskWorkers, "_workers", lambda self: [small])
    with pytest.raises(NormalMeshError, match=r"4 threads and 4\.0 GB .* start it with --nthreads 2"):
        DaskWorkers(cluster._client, memory=1.5e9).sharing(1)


def test_progress_covers_all_tasks(folder, workers, notes):
    arguments = {n: (n, str(notes)) for n in NUMBERS}
    Engine(folder).run("count", tile_tasks.counted, {2: arguments[2]})
    steps = []
    engine = Engine(folder, workers, Monitor(steps.append, work=2.0))
    engine.run("count", tile_tasks.counted, arguments, work=1.0)
    assert [step.stage for step in steps] == [f"count {n}/5" for n in range(1, 6)]
    np.testing.assert_allclose([step.share for step in steps], np.arange(1, 6) / 10)


def sum_of(runner, notes):
    """Return the sum of numbers, kept as such, with a runner."""

    def make():
        found = runner.run("count", tile_tasks.counted, {n: (n, str(notes)) for n in NUMBERS})
        return sum(int(each["number"][0]) for each in found.values())

    runner.run("before", tile_tasks.counted, {9: (9, str(notes))})
    return runner.kept("sum", make)


def test_what_is_kept_stands_for_the_stages_that_led_to_it(folder, notes):
    assert sum_of(Engine(folder), notes) == sum(NUMBERS)
    assert sum_of(Engine(folder), notes) == sum(NUMBERS)
    assert len(list(notes.iterdir())) == 1 + len(NUMBERS)
    assert sorted(path.as_posix() for path in contents(folder)) == [
        "before/9.arrays",
        "kept/sum.arrays",
    ]


def test_what_is_kept_is_made_again_if_it_is_damaged(folder, notes):
    sum_of(Engine(folder), notes)
    before = contents(folder)
    flip_a_bit(folder.path / "kept" / "sum.arrays")
    assert sum_of(Engine(folder), notes) == sum(NUMBERS)
    assert contents(folder) == before


def test_an_error_of_the_callback_cancels_the_rest(folder, workers, notes):
    def stop(step):
        if "2/" in step.stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Engine(folder, workers, Monitor(stop)).run("count", tile_tasks.counted, {n: (n, str(notes)) for n in range(99)})
    assert 2 <= len(list(notes.iterdir())) <= 2 + 2 * workers_module.AHEAD + 2


def test_a_worker_with_other_code_is_refused(folder, cluster, monkeypatch):
    monkeypatch.setattr("normalmesh.engine.engine.code_description", lambda: "9.9")
    with pytest.raises(NormalMeshError, match="install the same everywhere"):
        Engine(folder, cluster).run("squares", tile_tasks.squares, {1: (1,)})


def test_clusters_that_exist(folder, cluster):
    client = cluster._client
    for given in (client, client.scheduler.address):
        with started_workers(None, given, None, 1) as found:
            assert isinstance(found, DaskWorkers)
            assert Engine(folder, found).run("squares", tile_tasks.squares, {2: (2,)})[2].is_whole
    assert client.status == "running"


@pytest.mark.parametrize("given", ["tcp://127.0.0.1:1", "tpc://127.0.0.1:1", 3])
def test_clusters_that_do_not(given, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(workers_module, "CONNECTING", 0.3)
    with pytest.raises(NormalMeshError, match=r"cannot reach a Dask scheduler|client must be a distributed\.Client"):
        started_workers(None, given, None, 1).__enter__()


def test_without_dask_this_process_does_the_work(monkeypatch):
    monkeypatch.setattr(workers_module, "_has_dask", lambda: False)
    with started_workers(None, None, None, 8) as found:
        assert isinstance(found, ThisProcess)
    for count, cluster in ((1, None), (None, "tcp://127.0.0.1:1")):
        with pytest.raises(NormalMeshError, match=r"requires Dask: pip install 'normalmesh\[cluster\]'"):
            started_workers(count, cluster, None, 8).__enter__()


@pytest.mark.parametrize(("count", "fitting"), [(0, 8), (None, 1)])
def test_few_tiles_need_no_processes(count, fitting):
    with started_workers(count, None, None, fitting) as found:
        assert isinstance(found, ThisProcess)
