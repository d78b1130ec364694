"""Reads of artifacts, and who may see their bytes."""

from django.db.models import Q

from registry.choices import TokenScope
from registry.errors import ScopeError
from registry.models import AdapterVersion, BaseModel
from registry.services.actors import Actor

ARTIFACT_READERS = (TokenScope.READ.value, TokenScope.PULL.value)


def require_artifact_access(*, actor: Actor, digest: str) -> None:
    """Lets an actor pass who may read an artifact.

    An actor that is limited to named adapters does not get the bytes of other adapters; what is no adapter
    version's (base models, datasets, uploads not yet submitted) is open to every reader.

    Raises:
        ScopeError: it may not.
    """
    actor.require_any(ARTIFACT_READERS)
    if actor.adapter_names is None or BaseModel.objects.filter(artifact=digest).exists():
        return
    owners = AdapterVersion.objects.filter(Q(artifact=digest) | Q(merged_artifact=digest))
    names = set(owners.values_list("adapter__name", flat=True))
    if names and not names & actor.adapter_names:
        raise ScopeError("adapter-out-of-scope", adapter=", ".join(sorted(names)))
