"""The samples in a metrics response, parsed by Prometheus's own client library."""

from prometheus_client.parser import text_string_to_metric_families


def numbers(text: str) -> dict[str, float]:
    """Return the samples by name, with the label values after a colon."""
    return {
        ":".join(
            [sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "le")]
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("le", "+Inf") == "+Inf"
    }
