from .search import FunctionSearch as FunctionSearch
from .search import SearchReport as SearchReport
