from .index import FunctionSearch as FunctionSearch
from .index import SearchReport as SearchReport
