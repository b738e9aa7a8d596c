# Architecture 
 
## Flow 
 
``` 
file ─ read ─► NormalMap ─ find jumps ─► Jumps ─ decimate ─► ScreenMesh ─ integrate ─► Surface ─ save ─► file 
``` 
 
`reconstruction/pipeline.py` shows the flow in twenty lines, 
`decimation/rounds.py` one round of the paper in as many, 
`jumps/finding.py` how lines of jumps are found, 
`integration/mesh_integration.py` how a mesh is solved, 
refined and tidied. 
`tiles/stages.py` is the same flow for maps that stay on disk: each stage is a set of tasks, 
which see one window of the map. 
[docs/paper_map.md](docs/paper_map.md) leads from each equation of the paper to its function and its test. 
 
Screen: u right, 
v down; 
pixel (row i, 
column j) covers [j, 
j+1] × [i, 
i+1]. Space: x right, 
y up, 
z towards the viewer. 
A camera is defined by `τ_u`, 
`τ_v` and a ray `r(u, 
v)`; 
everything follows from `⟨n, 
r⟩ ∂_i z + ⟨n, 
τ_i⟩ = 0`. 
 
## Rooms 
 
The package consists of rooms. A room imports from the rooms below it, 
never from above (`make imports`). 
 
| room | what it holds | 
|---|---| 
| `cli` | the commands, 
one module each; 
their options, 
their progress display, 
their errors | 
| `report` | one HTML page that holds a surface and its figures | 
| `paper` | the tables and figures of the paper: `normalmesh bench` | 
| `pictures` | shaded views, 
wireframes, 
error maps; 
plots | 
| `reconstruction` | `pipeline` (`reconstruct`), 
`tiled_reconstruction`, 
`levels` of detail, 
`within` a tolerance, 
`estimates` of memory and time; 
`shortfalls`: what a surface lacks | 
| `evaluation` | `metrics`, 
`depth_gauge`; 
`looks`, 
which need no truth; 
`datasets` on disk; 
`synthetic` surfaces; 
`rendering` of triangle models; 
the `isotropic` baseline | 
| `tiles` | reconstruction in tiles: `stages`; 
`tile_grid`, 
`whole_mesh` and its pieces; 
decimation (`tiled_decimation`, 
`decimation_tasks`), 
the exact solve (`tile_faces`, 
`tile_elements`, 
`elimination`) and refinement (`tiled_integration`, 
`integration_tasks`), 
priors (`tiled_prior`), 
all by windows of a `clean_map`; 
`mask_components`, 
`tile_noise`, 
`tile_jumps`; 
the `engine` that runs tasks, 
its `workers` (this process or Dask) and `jobs`; 
the `work_folder` of results (`array_file`), 
its `description`; 
`tiled_estimate` of disk, 
memory and time | 
| `files` | reading normal maps, 
masks, 
depths, 
cameras, 
lights, 
`jump_lines`; 
`background` and `alpha`; 
`maps_on_disk`, 
which hand out windows of `windowed_arrays` (TIFF, 
Zarr, 
NPY), 
with the `map_facts` that rules for whole maps need; 
`mesh_formats` and their `precision`; 
`tileset` (3D Tiles) and its `tile_tree`; 
`depth_tiff` and its container `cog`; 
atomic writing, 
without `clashes` of inputs and outputs; 
`photometric` stereo by `matt_surface`, 
with `photometric_checks` | 
| `integration` | depths of the vertices of a mesh (`mesh_integration`): `solved_mesh`, 
its `refinement`, 
`tidying` and `splitting`; 
`prior`, 
the `prior_faces` of its points, 
their `prior_terms` and its `prior_correction`; 
or of pixels (`pixel_integration`, 
`pixel_jumps`) | 
| `jumps` | `finding` of lines along which depth jumps, 
through `jump_pixels`, 
which may be read window by window: `suspects`, 
`robust_solver`, 
`lines`, 
`snapping`; 
`given_lines` of the user; 
`placement` of parts, 
`seams` to cut along | 
| `facets` | the facet system: `face_means` (mean normals of faces), 
`facets` (planes that should meet), 
`plane_surface` (from planes to vertices), 
`robust_weights` | 
| `decimation` | `rounds` of `collapse`, 
`flip` and `move`; 
`quadrics`; 
the `hierarchy` of pixel corners and the `start_mesh`; 
`thin_parts` of the foreground; 
`polylines` along jumps; 
`stopping` rules; 
`thinning` of a surface for levels of detail; 
`mask_counts`: what the shape of a mask costs | 
| `solvers` | sparse symmetric systems: `cholesky`, 
`multigrid`, 
`conjugate_gradients` behind one `sparse_system`; 
`partial_cholesky` for solves in which few rows change; 
`border_elimination` and `dense_elimination` for solves in parts; 
their common `elimination_plan` | 
| `mesh` | `screen_mesh` (immutable), 
`closed_mesh` (under decimation), 
`cut_mesh`, 
`surface`; 
`raster`: which face owns which pixel; 
`depth_bands`; 
`jumps` and `origin`: records | 
| `normals` | `normal_map`, 
the components of its mask (`mask_labels`), 
`camera` (`orthographic`, 
`perspective`), 
`conventions` and their `diagnosis`, 
`noise` of its components (`component_maps`), 
`extension` to pixels without a measurement, 
`repairs`; 
`georeference` | 
| `runtime` | `kernels` (decorators), 
`compilation`, 
`kernel_cache`, 
`kernel_parts` (what a kernel contains), 
`trusted_files`, 
`threads`, 
`sorting`, 
`memory`, 
`memory_budget` (limits and the checks of stages), 
`file_lock`, 
`monitor` (progress and timing), 
`workspace` | 
| `arguments`, 
`errors` | checks of what callers give, 
once, 
at the border; 
what is raised | 
 
`__init__.pyi` lists the public names and where they live; 
they are imported on first use. 
 
A module is a driver `x.py` and its Numba kernels `_x.py`; 
the tests of a room are in `tests/<room>/`. No file name exists 
twice. Kernels take named tuples of arrays and at most eight parameters. `@kernel` functions are called from Python, 
`@inner` functions from kernels. A loop runs on several threads as a *range kernel* `kernel(first, 
last, 
…)` through 
`runtime.threads.in_parallel`: results never depend on the number of threads. 
 
Options are frozen dataclasses that check themselves: `decimation_options`, 
`integration_options`, 
`StoppingRule`. Records 
of what was done (`mesh.origin`) travel with the surface. 
 
## Where to put what 
 
| to add | touch | 
|---|---| 
| a camera | `normals/`: one module, 
a subclass of `CentralCamera` or `ParallelCamera`; 
`files/cameras.py` to read it from a file | 
| a camera whose rays are not affine in u and v, 
such as a fisheye | besides, 
`normals/_camera.py`: rays and tangents by position, 
and the kernels that take the frame of a camera | 
| a format that is read in windows | `files/`: a subclass of `WindowedArray`, 
named in `windowed_arrays.open_array` | 
| a mesh format | `files/mesh_formats.py`: one entry of the table | 
| a format of depth maps | `files/encoding.py`: one entry of the table; 
`files/mesh_writing.py` if the image may be larger than memory | 
| a stopping rule | `decimation/stopping.py`: a field of `StoppingRule`, 
its `Goal`; 
an argument of `decimate` and `reconstruct`; 
`cli/settings.py` and `cli/shared_options.py` | 
| a second implementation of collapse | a module beside `decimation/collapse.py`; 
costs and validity are in `_edge_collapse.py`; 
`Decimator._collapse` chooses it | 
| a solver | `solvers/`: one module; 
a `Preconditioner` in `sparse_system.py`, 
which chooses it | 
| a rule for lines of jumps | `jumps/lines.py` for strained edges, 
`jumps/finding.py` for paths of pixels; 
rules never look beyond a component of the mask | 
| a source of jumps, 
such as edges of a photograph | an edge image or polylines for `jumps.finding.jumps_along`; 
`jumps/given_lines.py` makes paths of pixel corners of them, 
`files/jump_lines.py` reads them | 
| a way to remove bad faces | `integration/_tidying.py`: a change that lowers the cost of its patch | 
| a progress display | a callback of `runtime.monitor.Step`, 
as `cli/progress_display.py` | 
| an option of the decimation or integration | `decimation/decimation_options.py`, 
`integration/integration_options.py`, 
and the public function | 
| an error measure | `evaluation/metrics.py`: a field of `Evaluation`, 
or, 
without ground truth, 
`evaluation/looks.py`: a field of `Looks`; 
`cli/evaluate.py` prints it | 
| a stage of the tiled reconstruction | `tiles/stages.py`: a function of a module that returns arrays by name, 
and a call of `Engine.run`; 
results are files that later stages load | 
| a data set | `evaluation/datasets/`: one module, 
named in `catalogue.py` | 
| a command | `cli/`: one module, 
named in `cli/__init__.py`; 
`docs/commands.md` | 
| a row of the scoreboard | `benchmarks/scoreboard/rows.py` | 
