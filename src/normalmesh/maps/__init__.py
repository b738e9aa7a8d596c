"""Normal maps, their masks, cameras and what belongs to them, from files and arrays, whole or in windows."""
