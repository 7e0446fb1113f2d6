from .broker import Broker as Broker
from .broker import FetchCaps as FetchCaps
from .broker import FetchSession as FetchSession
from .broker import RequestLog as RequestLog
