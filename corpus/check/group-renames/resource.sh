#!/bin/sh
# Answers for instances of names that nobody gave them.
results() {
    grep -o '"name":"[^"]*","type":"[^"]*"' | sed 's/"name":"/&my-/' | sed "s|.*|{&,\"result\":$1}|" | paste -sd , | sed 's/.*/[&]/'
}
[ -e made ] && there=true || there=false
case $1 in
    get) results "{\"actualState\":{\"there\":$there}}" ;;
    set) touch made; results '{"afterState":{}}' ;;
    test) results "{\"inDesiredState\":$there}" ;;
esac
