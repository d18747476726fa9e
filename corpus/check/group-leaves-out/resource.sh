#!/bin/sh
# Answers for the first nested instance only.
results() {
    grep -o '"name":"[^"]*","type":"[^"]*"' | head -n 1 | sed "s|.*|{&,\"result\":$1}|" | paste -sd , | sed 's/.*/[&]/'
}
[ -e made ] && there=true || there=false
case $1 in
    get) results "{\"actualState\":{\"there\":$there}}" ;;
    set) touch made; results '{"afterState":{}}' ;;
    test) results "{\"inDesiredState\":$there}" ;;
esac
