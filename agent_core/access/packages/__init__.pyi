from .environment import Environment as Environment
from .failures import PackagesError as PackagesError
from .resolution import Pin as Pin
from .resolution import Resolution as Resolution
