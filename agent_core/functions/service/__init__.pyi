from .call_records import noted as noted
from .file_checks import CheckRequest as CheckRequest
from .file_checks import count as count
from .function_service import FunctionService as FunctionService
from .plan import USER as USER
from .plan import Author as Author
from .plan import PlannedChange as PlannedChange
from .plan import StaleView as StaleView
