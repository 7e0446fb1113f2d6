from .broker import Broker as Broker
from .broker import FetchSession as FetchSession
from .caps import FetchCaps as FetchCaps
from .log import RequestLog as RequestLog
