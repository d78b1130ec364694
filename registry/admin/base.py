"""What the admin pages of the registry share: rights that follow scopes, and rows that never change."""

from typing import Any, TypeVar

from django.contrib.admin import display
from django.db.models import Model
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline

from registry.choices import TokenScope
from registry.services.actors import Actor, actor_from_request

Row = TypeVar("Row", bound=Model)
_ACTOR_ATTRIBUTE = "_assay_actor"
SHORT_DIGEST_CHARS = 12


def actor_of(request: HttpRequest) -> Actor:
    """The actor of an admin request, looked up once for each request."""
    actor: Actor | None = getattr(request, _ACTOR_ATTRIBUTE, None)
    if actor is None:
        actor = actor_from_request(request)
        setattr(request, _ACTOR_ATTRIBUTE, actor)
    return actor


class ReadOnlyAdmin(ModelAdmin):  # type: ignore[misc]
    """Pages that show rows to everybody with the scope `read` and change nothing."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the model is in the menu."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may read."""
        return actor_of(request).has_scope(TokenScope.READ)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


class ReadOnlyInline(TabularInline):  # type: ignore[misc]
    """Rows below another row, shown only."""

    extra = 0
    can_delete = False
    show_change_link = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may read."""
        return actor_of(request).has_scope(TokenScope.READ)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


class AdminOnlyAdmin(ReadOnlyAdmin):
    """As `ReadOnlyAdmin`, for the scope `admin` only: tokens, the audit log and the like."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Admins."""
        return actor_of(request).has_scope(TokenScope.ADMIN)


def short_digest(digest: str | None) -> str:
    """The beginning of a digest, for columns; "" for None."""
    return (digest or "")[:SHORT_DIGEST_CHARS]


@display(description="size", ordering="size_bytes")
def shown_size(row: Any) -> str:
    """`size_bytes` in binary units, for columns."""
    size = float(row.size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
