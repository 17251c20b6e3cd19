#!/bin/sh
# An ordinary day: raw files to models, reports and answers, with nothing set but ε, δ and bounds.
#
#   sh examples/ordinary-day.sh DATA
#
# DATA is a folder with adult.data, adult.test, bank-full.csv, cal_housing.data, ratings.csv and movies.csv as they are
# published (or in gzip), and with the folders pictures and pictures-test, each with one folder of PNG files for each class.
# Everything is written to the folder ordinary-day. Numbers after --records are rough and public.
set -eu

data=$1
schemas=$(dirname "$0")/ordinary-day
quell=${QUELL:-quell}
here=ordinary-day
mkdir -p "$here"

file() {  # a file of DATA, in gzip or not
    if [ -e "$data/$1.gz" ]; then echo "$data/$1.gz"; else echo "$data/$1"; fi
}

quell() {  # every command uses the same ledgers
    echo "> quell $*" >&2
    command "$quell" "$@" --ledger "$here/ledgers"
}

# Adult: income from a census. The test file is public.
quell train "$(file adult.data)" --schema "$schemas/adult.toml" --test "$(file adult.test)" \
    --records 32000 --epsilon 1 --delta 1e-6 --budget 2 --output "$here/adult"
quell query "$(file adult.data)" mean,median --column age --schema "$schemas/adult.toml" \
    --group-by sex --groups Female,Male --epsilon 0.2

# Bank: who subscribes? The test part is a private share of the table, so its accuracy is paid for.
quell train "$(file bank-full.csv)" --schema "$schemas/bank.toml" \
    --records 36000 --epsilon 1 --delta 1e-6 --budget 2 --output "$here/bank"
quell evaluate "$here/bank" "$(file bank-full.csv)" --epsilon 0.1
quell query "$(file bank-full.csv)" histogram --column job --schema "$schemas/bank.toml" --epsilon 0.1

# California: the value of houses, a number.
quell train "$(file cal_housing.data)" --schema "$schemas/california.toml" \
    --records 20000 --epsilon 1 --delta 1e-6 --budget 2 --output "$here/california"
quell query "$(file cal_housing.data)" quantile --column value --quantile 0.25,0.5,0.75 \
    --schema "$schemas/california.toml" --epsilon 0.2

# Pictures: one folder of PNG files for each class.
quell train "$data/pictures" --test "$data/pictures-test" --records 6000 --epsilon 3 --delta 1e-5 \
    --output "$here/pictures"

# Ratings: recommendations that protect each user with all their ratings.
quell train "$(file ratings.csv)" --model factorization --user userId --item movieId --value rating \
    --bounds 0.5 5 --items "$(file movies.csv)" --records 600 --epsilon 3 --delta 1e-4 --output "$here/ratings"

for run in adult bank california pictures ratings; do
    echo "$here/$run/report.html"
done
quell ledger list
