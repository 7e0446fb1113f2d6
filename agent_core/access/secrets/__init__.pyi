from .masks import Masks as Masks
from .session import REVEALED as REVEALED
from .session import CallSecrets as CallSecrets
from .session import MaskedChannel as MaskedChannel
from .session import mask_logs as mask_logs
from .source import Secrets as Secrets
