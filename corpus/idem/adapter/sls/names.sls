many:
  work.run:
  - names: [a, b]
  - path: $DIR/log
