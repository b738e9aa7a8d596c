// The parts of three.js that the viewer uses; make_bundle.sh bundles them into three.bundle.min.js.
export {
  BufferAttribute,
  BufferGeometry,
  DoubleSide,
  LinearMipmapLinearFilter,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  PerspectiveCamera,
  Scene,
  ShaderMaterial,
  Spherical,
  Texture,
  Vector3,
  WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
