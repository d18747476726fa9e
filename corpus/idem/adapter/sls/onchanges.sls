one:
  thing.present:
  - path: $DIR/one
next:
  work.run:
  - path: $DIR/log
  - onchanges:
    - thing: one
