from .broker import Broker as Broker
from .broker import FetchSession as FetchSession
from .broker import RequestLog as RequestLog
from .caps import FetchCaps as FetchCaps
