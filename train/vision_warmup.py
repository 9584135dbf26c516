"""Warm up a random vision tower: each visual token learns to be the embedding of a caption token.

python train/vision_warmup.py [--config RECIPE] [key.path=value ...]

It runs in one process, on the CPU.

The language model does not run. Its input embeddings show what visual tokens must be like so that
it can read a picture as a line of text, such as ``bar: A 3, B 7, C 5``. Before its last block the
tower also learns to tell names and values, and which item they belong to, at the points where they
are drawn: captions are put together from these. At every token of the caption it learns which of
them that token writes. In its last block one head learns to look from the latter to the former.
Without these tasks the tower learns how captions are laid out, and their digits not at all.
"""

from train.run import EntryPoint

main = EntryPoint("vision_warmup")

if __name__ == "__main__":
    main()
