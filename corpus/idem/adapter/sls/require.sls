second:
  work.run:
  - path: $DIR/log
  - require:
    - work: first
first:
  work.run:
  - path: $DIR/log
