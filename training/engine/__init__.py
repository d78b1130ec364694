"""Training engine: chat rendering, LoRA training, data checks and the fp32 merge.

Pure: frozen configuration in, typed result out. Nothing here imports Django, Celery or the evaluation
package, and nothing reads settings or the environment.
"""
