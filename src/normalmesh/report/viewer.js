"use strict";
// Draw the surface of the page. Positions are centred and scaled so that the longest side of the bounding box is 1.
(async () => {
  const element = (id) => document.getElementById(id);
  const HEAT = ["#000004", "#50127b", "#b63679", "#fb8861", "#fcfdbf"];
  const VIRIDIS = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"];
  const COLOURS = { error: HEAT, uncertainty: HEAT, density: VIRIDIS };
  const DARK = 0x1c2330, LIGHT = 0xc4cad6, RED = 0xff2a1f;
  const MODES = { light: 0, normal: 1, error: 2, uncertainty: 2, density: 2, photo: 3 };

  const VERTEX = `
    attribute float value;
    varying vec3 place, outward;
    varying vec2 at;
    varying float share;
    void main() {
      place = position;
      outward = normal;
      at = uv;
      share = value;
      gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
    }`;
  const FRAGMENT = `
    uniform int mode;
    uniform bool flat_faces;
    uniform vec3 colours[5];
    uniform sampler2D photo;
    uniform mat3 turn;
    varying vec3 place, outward;
    varying vec2 at;
    varying float share;
    void main() {
      // The cross product of the derivatives always points towards the viewer.
      vec3 facet = normalize(cross(dFdx(place), dFdy(place)));
      vec3 n = flat_faces ? facet : normalize(outward);
      if (flat_faces && !gl_FrontFacing) n = -n;
      vec3 seen = normalize(turn * (gl_FrontFacing ? n : -n));
      float light = max(dot(seen, vec3(-0.349, 0.399, 0.848)), 0.0);
      float fill = 0.5 + 0.5 * seen.y;
      vec3 colour = (gl_FrontFacing ? vec3(0.93, 0.92, 0.90) : vec3(0.62, 0.66, 0.74))
        * (0.14 + 0.12 * fill + 0.72 * light) + 0.06 * pow(light, 24.0);
      if (mode == 1) colour = 0.5 + 0.5 * n;
      if (mode == 2) {
        float place4 = clamp(share * 255.0 / 254.0, 0.0, 1.0) * 4.0;
        int low = int(min(place4, 3.0));
        vec3 from = colours[0], to = colours[1];
        for (int k = 1; k < 4; k++) if (k == low) { from = colours[k]; to = colours[k + 1]; }
        colour = share > 0.998 ? vec3(0.55) : mix(from, to, place4 - float(low)) * (0.75 + 0.3 * light);
      }
      if (mode == 3) colour = texture2D(photo, at).rgb;
      gl_FragColor = vec4(colour, 1.0);
    }`;

  function showMessage(text) {
    element("message").textContent = text;
    element("message").hidden = !text;
  }

  async function decompress() {
    const text = atob(element("geometry").textContent.trim());
    element("geometry").textContent = "";
    const bytes = new Uint8Array(text.length);
    for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // Decode an array (rows, columns) that is stored column by column as byte planes, lowest bytes first.
  function decodeArray(bytes, { start, bytes: width, shape: [rows, columns = 1] }) {
    const array = new { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[width](rows * columns);
    for (let column = 0; column < columns; column++)
      for (let plane = 0; plane < width; plane++) {
        const first = start + (column * width + plane) * rows;
        for (let row = 0; row < rows; row++) array[row * columns + column] |= bytes[first + row] << (8 * plane);
      }
    return array;
  }

  // Decode rows from zigzag-encoded differences, as fractions of 65535.
  function decodeDifferences(steps, columns) {
    const shares = new Float32Array(steps.length);
    for (let column = 0; column < columns; column++)
      for (let k = column, sum = 0; k < steps.length; k += columns) {
        sum = (sum + ((steps[k] >>> 1) ^ -(steps[k] & 1))) & 0xffff;
        shares[k] = sum / 65535;
      }
    return shares;
  }

  function decodeFaces(steps) {
    for (let k = 0, first = 0; k < steps.length; k += 3) {
      first += steps[k];
      steps[k] = first;
      steps[k + 1] += first;
      steps[k + 2] += first;
    }
    return steps;
  }

  function edges(index, count) {
    const keys = new Float64Array(index.length);
    for (let k = 0; k < index.length; k++) {
      const a = index[k], b = index[k % 3 === 2 ? k - 2 : k + 1];
      keys[k] = Math.min(a, b) * count + Math.max(a, b);
    }
    keys.sort();
    const found = new Uint32Array(2 * keys.length);
    let size = 0;
    for (let k = 0; k < keys.length; k++)
      if (k === 0 || keys[k] !== keys[k - 1]) {
        found[size++] = Math.floor(keys[k] / count);
        found[size++] = keys[k] % count;
      }
    return found.slice(0, size);
  }

  const longestSide = (about) => Math.max(...about.size) || 1;

  async function loadGeometry(about) {
    const bytes = await decompress();
    const array = (name) => decodeArray(bytes, about.arrays[name]);
    const places = decodeDifferences(array("position"), 3);
    for (let k = 0; k < places.length; k++) places[k] = ((places[k] - 0.5) * about.size[k % 3]) / longestSide(about);
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(places, 3));
    geometry.setIndex(new THREE.BufferAttribute(decodeFaces(array("index")), 1));
    geometry.computeVertexNormals();
    if (about.arrays.uv) geometry.setAttribute("uv", new THREE.BufferAttribute(decodeDifferences(array("uv"), 2), 2));
    const values = {};
    for (const name of Object.keys(about.scales)) values[name] = new THREE.BufferAttribute(array(name), 1, true);
    return { geometry, values, cuts: about.arrays.cuts ? array("cuts") : null };
  }

  function lines(geometry, index, colour) {
    const found = new THREE.BufferGeometry();
    found.setAttribute("position", geometry.getAttribute("position"));
    found.setIndex(new THREE.BufferAttribute(index, 1));
    return new THREE.LineSegments(found, new THREE.LineBasicMaterial({ color: colour, transparent: true }));
  }

  async function photoTexture(address) {
    const image = new Image();
    image.src = address;
    await image.decode();
    const texture = new THREE.Texture(image);
    texture.minFilter = THREE.LinearMipmapLinearFilter;
    texture.anisotropy = 4;
    texture.needsUpdate = true;
    return texture;
  }

  async function start() {
    const about = JSON.parse(element("about").textContent);
    if (typeof DecompressionStream === "undefined")
      throw new Error("this browser is too old: it has no DecompressionStream");
    const canvas = element("canvas"), stage = element("stage");
    const renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
    renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    const { geometry, values, cuts } = await loadGeometry(about);
    const material = new THREE.ShaderMaterial({
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
      side: THREE.DoubleSide,
      polygonOffset: true,
      polygonOffsetFactor: 1,
      polygonOffsetUnits: 1,
      uniforms: {
        mode: { value: 0 },
        flat_faces: { value: false },
        colours: { value: HEAT.map(rgb) },
        photo: { value: about.photo ? await photoTexture(about.photo) : null },
        turn: { value: null },
      },
    });
    const surface = new THREE.Mesh(geometry, material);
    material.uniforms.turn.value = surface.normalMatrix;
    const scene = new THREE.Scene();
    scene.add(surface);
    const camera = new THREE.PerspectiveCamera(28, 1, 0.005, 50);
    const controls = new THREE.OrbitControls(camera, canvas);
    controls.minDistance = 0.05;
    controls.maxDistance = 12;
    controls.screenSpacePanning = true;
    if (document.documentElement.dataset.layout === "embedded") {
      // The wheel scrolls the notebook until the surface has been touched.
      controls.enableZoom = false;
      canvas.addEventListener("pointerdown", () => { controls.enableZoom = true; }, { once: true });
    }

    let waiting = false, wires = null;
    // The angles of the last preset view; null once the user has moved the camera.
    let angles = [22, 12];
    function draw() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        renderer.render(scene, camera);
        document.documentElement.dataset.drawn = Number(document.documentElement.dataset.drawn || 0) + 1;
      });
    }

    function fit() {
      renderer.setSize(stage.clientWidth, stage.clientHeight, false);
      camera.aspect = stage.clientWidth / Math.max(stage.clientHeight, 1);
      camera.updateProjectionMatrix();
      if (angles) look(...angles);
      draw();
    }

    // Look from the given angles in degrees, from the smallest distance at which the bounding box is visible.
    function look(right, above) {
      angles = [right, above];
      const sphere = new THREE.Spherical(1, ((90 - above) * Math.PI) / 180, (right * Math.PI) / 180);
      controls.target.set(0, 0, 0);
      camera.position.setFromSpherical(sphere);
      controls.update();
      const high = Math.tan((camera.fov / 2) * (Math.PI / 180)), wide = high * camera.aspect;
      const back = camera.quaternion.clone().invert(), half = about.size.map((length) => length / 2 / longestSide(about));
      let distance = 0.1;
      for (let k = 0; k < 8; k++) {
        const sign = (axis) => ((k >> axis) & 1 ? 1 : -1);
        const corner = new THREE.Vector3(...half.map((length, axis) => sign(axis) * length)).applyQuaternion(back);
        distance = Math.max(distance, corner.z + 1.06 * Math.max(Math.abs(corner.x) / wide, Math.abs(corner.y) / high));
      }
      camera.position.multiplyScalar(distance);
      controls.update();
      draw();
    }

    function shade(name) {
      material.uniforms.mode.value = MODES[name];
      if (COLOURS[name]) {
        geometry.setAttribute("value", values[name]);
        material.uniforms.colours.value = COLOURS[name].map(rgb);
        element("low").textContent = about.scales[name].low;
        element("high").textContent = about.scales[name].high;
        element("scale").querySelector("i").style.background = `linear-gradient(90deg, ${COLOURS[name].join(", ")})`;
      }
      element("scale").hidden = !COLOURS[name];
      showWires(element("wireframe").checked);
    }

    function showWires(shown) {
      if (shown && !wires) {
        wires = lines(geometry, edges(geometry.index.array, geometry.getAttribute("position").count), DARK);
        wires.material.opacity = 0.55;
        scene.add(wires);
      }
      if (wires) wires.visible = shown;
      if (wires) wires.material.color.set(material.uniforms.mode.value === MODES.error ? LIGHT : DARK);
      draw();
    }
    const jumps = cuts && lines(geometry, cuts, RED);
    if (jumps) scene.add(jumps);

    function showMap(shown) {
      element("map").hidden = !shown;
      element("panes").classList.toggle("two", shown);
    }

    // Rotate or pan by steps to the right and up; nearer: factor of the distance.
    function step(right, up, moved, nearer = 1) {
      angles = null;
      const offset = camera.position.clone().sub(controls.target);
      if (moved) {
        const along = new THREE.Vector3(right, up, 0).multiplyScalar(-0.04 * offset.length());
        controls.target.add(along.applyQuaternion(camera.quaternion));
      } else {
        const sphere = new THREE.Spherical().setFromVector3(offset);
        sphere.theta += right * 0.1;
        sphere.phi -= up * 0.1;
        sphere.radius *= nearer;
        offset.setFromSpherical(sphere.makeSafe());
      }
      camera.position.copy(controls.target).add(offset);
      controls.update();
      draw();
    }

    const start = () => look(22, 12);
    const KEYS = {
      ArrowLeft: (event) => step(-1, 0, event.shiftKey),
      ArrowRight: (event) => step(1, 0, event.shiftKey),
      ArrowUp: (event) => step(0, 1, event.shiftKey),
      ArrowDown: (event) => step(0, -1, event.shiftKey),
      "+": () => step(0, 0, false, 0.9),
      "=": () => step(0, 0, false, 0.9),
      "-": () => step(0, 0, false, 1 / 0.9),
      0: start,
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
      event.preventDefault();
      KEYS[event.key](event);
    });
    const toggles = {
      wireframe: showWires,
      flat: (on) => { material.uniforms.flat_faces.value = on; draw(); },
      jumps: (on) => { if (jumps) jumps.visible = on; draw(); },
      beside: showMap,
    };
    // Browsers keep the state of the controls when a page is reloaded.
    for (const [id, apply] of Object.entries(toggles)) {
      element(id).addEventListener("change", (event) => apply(event.target.checked));
      apply(element(id).checked);
    }
    for (const radio of document.querySelectorAll("input[name=shading]")) {
      radio.addEventListener("change", () => shade(radio.value));
      if (radio.checked) shade(radio.value);
    }
    element("front").addEventListener("click", () => look(0, 0));
    element("reset").addEventListener("click", start);
    controls.addEventListener("start", () => { angles = null; });
    controls.addEventListener("change", draw);
    new ResizeObserver(fit).observe(stage);
    fit();
    showMessage("");
    document.documentElement.dataset.state = "ready";
  }

  function rgb(hex) {
    const number = parseInt(hex.slice(1), 16);
    return new THREE.Vector3(number >> 16, (number >> 8) & 255, number & 255).divideScalar(255);
  }

  try {
    await start();
  } catch (error) {
    document.documentElement.dataset.state = "failed";
    showMessage(`The surface cannot be shown: ${error.message}`);
  }
})();
