"""What Prometheus would read of an answer, by the parser of its own client."""

from prometheus_client.parser import text_string_to_metric_families


def numbers(text: str) -> dict[str, float]:
    """The samples by name, with the values of labels after a colon."""
    return {
        ":".join([sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "le")]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("le", "+Inf") == "+Inf"
    }
