from .environment import Environment as Environment
from .resolution import PackagesError as PackagesError
from .resolution import Pin as Pin
from .resolution import Resolution as Resolution
