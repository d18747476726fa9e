slow:
  work.run:
  - path: $DIR/log
  - calls: 3
