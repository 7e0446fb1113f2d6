from .models import Embedder as Embedder
from .models import EmbeddingUnavailable as EmbeddingUnavailable
from .models import embedder as embedder
