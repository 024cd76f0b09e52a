"""Run `munjang` with an interpreter chosen by hand: python -m munjang encode ..."""

from munjang.cli import main

raise SystemExit(main())
