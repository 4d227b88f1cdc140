"""The papers that metrics follow, as BibTeX. Read without an import, so each is one literal."""

COAT = """\
@misc{a_coat_a_tre_2026,
  author = {Chen, Chuyang and Steers, Bea and McFee, Brian and Bello, Juan},
  title = {Evaluating Compositional Structure in Audio Representations},
  year = {2026},
  eprint = {2603.13685},
  archivePrefix = {arXiv},
  note = {ICASSP 2026}
}
"""
"""arXiv 2603.13685: A-COAT and A-TRE."""

AXES = """\
@misc{representation_evaluation_2025,
  author = {Plachouras, Christos and Guinot, Julien and Fazekas, George and Quinton, Elio and Benetos, Emmanouil
            and Pauwels, Johan},
  title = {Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks},
  year = {2025},
  eprint = {2505.06224},
  archivePrefix = {arXiv},
  note = {IJCNN 2025}
}
"""
"""arXiv 2505.06224: the four axes."""

COMPA = """\
@inproceedings{compa_2024,
  author = {Ghosh, Sreyan and Seth, Ashish and Kumar, Sonal and Tyagi, Utkarsh and Evuru, Chandra Kiran and
            Ramaneswaran, S. and Sakshi, S. and Nieto, Oriol and Duraiswami, Ramani and Manocha, Dinesh},
  title = {{CompA}: Addressing the Gap in Compositional Reasoning in Audio-Language Models},
  booktitle = {International Conference on Learning Representations},
  year = {2024},
  eprint = {2310.08753},
  archivePrefix = {arXiv}
}
"""
"""arXiv 2310.08753: CompA."""
