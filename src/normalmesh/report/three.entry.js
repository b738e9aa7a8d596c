// What the viewer uses of three.js; make_bundle.sh makes three.bundle.min.js of it.
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
