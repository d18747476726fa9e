#!/bin/sh
# All nested instances are there as soon as the group was set.
results() {
    grep -o '"name":"[^"]*","type":"[^"]*"' | cat | sed "s|.*|{&,\"result\":$1}|" | paste -sd , | sed 's/.*/[&]/'
}
[ -e made ] && there=true || there=false
case $1 in
    get) results "{\"actualState\":{\"there\":$there}}" ;;
    set) touch made; results '{"afterState":{}}' ;;
    test) results "{\"inDesiredState\":$there}" ;;
esac
