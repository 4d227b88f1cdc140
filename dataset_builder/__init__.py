"""Scenes, their sound, their selection, and the published data set."""

from .benchmark import (AUDIO_COLUMNS, Benchmark, ClipBatch, RenderedBenchmark, check_task, open_benchmark)
from .build import build_dataset
from .synthesis.config import PRESETS, BenchmarkConfig, preset_config
from .synthesis.draw import draw_quadruples, draw_scenes
from .messages import DatasetError
from .synthesis.scenes import Quadruple, Scene, Source
from .synthesis.sound import ToneBank, render_tone_bank

__all__ = [
    "AUDIO_COLUMNS",
    "PRESETS",
    "Benchmark",
    "BenchmarkConfig",
    "ClipBatch",
    "DatasetError",
    "Quadruple",
    "RenderedBenchmark",
    "Scene",
    "Source",
    "ToneBank",
    "build_dataset",
    "check_task",
    "draw_quadruples",
    "draw_scenes",
    "open_benchmark",
    "preset_config",
    "render_tone_bank",
]
