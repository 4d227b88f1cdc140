"""What a run asks of a model behind a server: longer answers, and how many questions it wants in a call."""

from audio_compositionality.encoders.language_models.endpoint import EndpointModel
from audio_compositionality.encoders.language_models.endpoint_name import parse_endpoint
from audio_compositionality.encoders.language_models.endpoint_settings import EndpointSettings
from audio_compositionality.encoders.loading.controls import CONTROLS, control
from audio_compositionality.encoders.loading.under_controls import innermost, with_new_tokens
from audio_compositionality.encoders.protocols import BatchFormer, QuestionCounter, Teller, Writer


def test_longer_answers_are_those_of_another_id_and_settings_stay():
    settings = EndpointSettings(concurrency=3, max_questions=5)
    model = EndpointModel(parse_endpoint("endpoint:m@http://127.0.0.1:9/v1"), settings=settings)
    for kind in (BatchFormer, QuestionCounter, Teller, Writer):
        assert isinstance(model, kind)
    longer = with_new_tokens(control(model, CONTROLS["without-audio"]), 1024)
    inside = innermost(longer)
    assert isinstance(inside, EndpointModel)
    assert longer.card.id == "without-audio:endpoint:m@127.0.0.1:9@tokens=1024"
    assert (inside.max_tokens, inside.new_tokens, inside.settings) == (1024, 1024, settings)
    assert (model.max_tokens, model.questions_per_call) == (16, 24)
    assert inside.with_new_tokens(16).card.id == model.card.id == "endpoint:m@127.0.0.1:9"
