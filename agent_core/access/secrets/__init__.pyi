from .masks import Masks as Masks
from .session import DISCLOSED as DISCLOSED
from .session import CallSecrets as CallSecrets
from .session import Curtain as Curtain
from .session import shade_logs as shade_logs
from .source import Secrets as Secrets
