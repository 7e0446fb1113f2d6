from .local import Embedder as Embedder
from .local import EmbeddingUnavailable as EmbeddingUnavailable
from .models import embedder as embedder
