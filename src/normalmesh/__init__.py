"""normalmesh: from a normal map to a 3D surface, by way of a sparse, feature-aligned triangle mesh.

``__init__.pyi`` lists the public names and where they live. They are imported when they are first used, so that
``import normalmesh`` and the command line's help stay fast.
"""

import logging

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"

# Programs that configure logging see what the library reports; others see nothing.
logging.getLogger(__name__).addHandler(logging.NullHandler())
