"""Read a model's configuration: by its fields, then by its class's defaults, never by its name."""

from kvmodel.config.edit import with_value
from kvmodel.config.parse import ParsedConfig, parse_model_config
from kvmodel.config.reader import Field
from kvmodel.config.text import MAX_CONFIG_CHARACTERS

__all__ = ["MAX_CONFIG_CHARACTERS", "Field", "ParsedConfig", "parse_model_config", "with_value"]
