"""`{{ text|visible }}`: text from outside in a template, escaped and with hidden characters shown."""

from django import template
from django.utils.safestring import SafeString

from registry.visible_text import visible_text

register = template.Library()


@register.filter
def visible(text: object) -> SafeString:
    """The text as HTML; "" for None."""
    return visible_text("" if text is None else str(text))
