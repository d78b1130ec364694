"""The handbook: symptoms of a training or its model, what usually causes them, and what to do first.

The rows' codes are fixed here; their texts are data in English and Chinese, which the application copies into
its database, where people extend them (MISSION T5, T6).
"""
