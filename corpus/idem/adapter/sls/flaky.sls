flaky:
  work.run:
  - path: $DIR/log
  - fails: 2
behind:
  work.run:
  - path: $DIR/log
  - require:
    - work: flaky
