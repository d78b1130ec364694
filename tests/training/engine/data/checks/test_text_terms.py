from training.engine.data.checks.text_terms import hash_term, list_terms


def test_words_and_character_pairs() -> None:
    assert list(list_terms("The Router, the ROUTER-2")) == ["the", "router", "2"]
    assert list(list_terms("网络很慢 A型")) == ["网络", "络很", "很慢", "a", "型"]
    assert list(list_terms("")) == []


def test_buckets_do_not_depend_on_the_process() -> None:
    # CRC-32 of "123456789" is 0xCBF43926, the check value of the algorithm's catalogue.
    assert hash_term("123456789", 1 << 32) == 0xCBF43926
    assert 0 <= hash_term("\ud800", 64) < 64
