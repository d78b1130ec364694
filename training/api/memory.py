"""How much memory a training would need, over REST. Nothing is stored."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView
from registry.api.idempotency import idempotent
from registry.api.strict import StrictSerializer
from training.api.serializers import MAX_REFERENCE_CHARS
from training.api.views import MAY_LOOK
from training.engine.memory.cards import MAX_KINDS, MAX_TEXT_CHARACTERS, parse_card
from training.engine.memory.comparison import Fit
from training.engine.memory.estimate import METHODS
from training.engine.memory.request import ALL_METHODS, MAX_BATCH_SIZE, MAX_RANK, MAX_TOKENS
from training.selectors.memory import compare_memory

MAX_MODULE_NAMES = 64


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "description": "Name of a registered base model."},
            {"type": "object", "additionalProperties": True, "description": "Content of a config.json."},
        ]
    }
)
class BaseModelField(serializers.Field[Any, Any, Any, Any]):
    """A registered base model's name, or the content of a config.json."""

    def to_internal_value(self, data: Any) -> str | Mapping[str, Any]:
        """The name or the content.

        Raises:
            ValidationError: neither of them.
        """
        if isinstance(data, Mapping) or (isinstance(data, str) and 0 < len(data) <= MAX_REFERENCE_CHARS):
            return data
        raise ValidationError("Give a base model's name or the content of a config.json.", code="invalid")

    def to_representation(self, value: Any) -> Any:
        """The value as it is."""
        return value


class CardField(serializers.CharField):
    """A card, such as "24GB" or "80GB x 8"."""

    def to_internal_value(self, data: Any) -> str:
        """The text, when a card can be read out of it.

        Raises:
            ValidationError: it cannot.
        """
        text = super().to_internal_value(data)
        try:
            parse_card(text)
        except ValueError as error:
            message = f'The text {error}; write "24GB", or "80GB x 8" for several of the same.'
            raise ValidationError(message, code="card-unreadable") from error
        return text


class MemoryEstimateCreateSerializer(StrictSerializer):
    """A training whose memory is asked for; everything but the base model has a default."""

    base_model = BaseModelField()
    method = serializers.ChoiceField(choices=(ALL_METHODS, *METHODS), required=False)
    cards = serializers.ListField(
        child=CardField(max_length=MAX_TEXT_CHARACTERS),
        max_length=MAX_KINDS,
        required=False,
        help_text='Such as "24GB" or "80GB x 8"; 1 GB is 10^9 bytes.',
    )
    tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS, required=False, help_text="Per row.")
    batch_size = serializers.IntegerField(min_value=1, max_value=MAX_BATCH_SIZE, required=False)
    rank = serializers.IntegerField(min_value=1, max_value=MAX_RANK, required=False)
    target_modules = serializers.ListField(
        child=serializers.CharField(max_length=MAX_REFERENCE_CHARS),
        min_length=1,
        max_length=MAX_MODULE_NAMES,
        required=False,
    )
    layers = serializers.IntegerField(
        min_value=1, required=False, allow_null=True, help_text="Adapted blocks; null adapts all."
    )
    checkpointing = serializers.BooleanField(required=False)
    short_moments = serializers.BooleanField(
        required=False, help_text="Whether Adam's moments are bf16: 12 bytes a parameter instead of 16."
    )


class _SizedSerializer(serializers.Serializer[Any]):
    low_bytes = serializers.IntegerField()
    high_bytes = serializers.IntegerField()


class MemoryLineSerializer(_SizedSerializer):
    """One item of a ledger."""

    name = serializers.CharField()
    how = serializers.CharField()


class MemoryCardSerializer(serializers.Serializer[Any]):
    """A kind of card."""

    card = serializers.CharField()
    memory_bytes = serializers.IntegerField()
    num_cards = serializers.IntegerField()


class MemoryFitSerializer(MemoryCardSerializer, _SizedSerializer):
    """How a method fits a card. `is_sharded`: weights and states are spread over the cards."""

    fit = serializers.ChoiceField(choices=[fit.value for fit in Fit])
    is_sharded = serializers.BooleanField()


class MemoryMethodSerializer(_SizedSerializer):
    """The ledger of one method on one card."""

    method = serializers.CharField(help_text=", ".join(METHODS))
    num_trained = serializers.IntegerField()
    lines = MemoryLineSerializer(many=True)
    cards = MemoryFitSerializer(many=True)


class MemoryChangeSerializer(serializers.Serializer[Any]):
    """A change on top of those before it, and the training after it."""

    what = serializers.CharField()
    method = serializers.CharField(help_text=", ".join(METHODS))
    batch_size = serializers.IntegerField()
    tokens = serializers.IntegerField()
    checkpointing = serializers.BooleanField()
    high_bytes = serializers.IntegerField()
    fits = serializers.BooleanField()


class MemoryAnswerSerializer(MemoryCardSerializer):
    """What a card is good for; changes only where no method fits."""

    fitting = serializers.ListField(child=serializers.CharField())
    tight = serializers.ListField(child=serializers.CharField())
    changes = MemoryChangeSerializer(many=True)


class MemoryModelSerializer(serializers.Serializer[Any]):
    """The model as its config.json describes it."""

    model_type = serializers.CharField(allow_blank=True)
    num_parameters = serializers.IntegerField()
    num_layers = serializers.IntegerField()
    hidden_size = serializers.IntegerField()
    vocab_size = serializers.IntegerField()


class MemoryDoubtSerializer(serializers.Serializer[Any]):
    """A reason to take the figures with care."""

    code = serializers.CharField()
    message = serializers.CharField()


class MemoryEstimateSerializer(serializers.Serializer[Any]):
    """The memory of a training with each of the methods, in bytes."""

    request = serializers.DictField()
    model = MemoryModelSerializer()
    methods = MemoryMethodSerializer(many=True)
    cards = MemoryAnswerSerializer(many=True)
    doubts = MemoryDoubtSerializer(many=True)


class MemoryEstimateListView(AssayView):
    """Estimates of memory; none is kept."""

    scopes = {"POST": MAY_LOOK}

    @extend_schema(
        operation_id="memory_estimates_create",
        tags=["training"],
        request=MemoryEstimateCreateSerializer,
        responses={200: MemoryEstimateSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Tells how much memory a training needs, line by line, which cards it fits, and what to change first
        where none does.
        """
        body = self.validated(MemoryEstimateCreateSerializer)
        base_model = body.pop("base_model")
        comparison = compare_memory(base_model=base_model, request=body)
        return Response(MemoryEstimateSerializer(comparison.to_json()).data)
