# SPDX-License-Identifier: MIT
# words.pl SEED: hashes, patterns, sorting by a sub, recursion, objects and eval.
use strict;
use warnings;
no warnings 'recursion';

package Amount;
use overload
    '+'   => sub { Amount->new($_[0]{value} + (ref $_[1] ? $_[1]{value} : $_[1])) },
    '<=>' => sub { my ($left, $right) = @_; length("$left->{value}" x 3) <=> length("$right->{value}" x 3) };
sub new { my ($class, $value) = @_; return bless {value => $value, tags => ['a' .. 'e']}, $class }
sub DESTROY { my $self = shift; my @rest = map { $_ x 40 } @{$self->{tags}} }

package main;
srand($ARGV[0]);

sub tree {
    my $depth = shift;
    return $depth == 0 ? {leaf => rand} : [map { tree($depth - 1) } 1 .. 1 + int rand 3];
}

sub fail {
    my $depth = shift;
    my $text = 'y' x (100 + $depth);
    die {text => $text} if $depth == 0;
    eval { fail($depth - 1); 1 } or die $@;
}

for my $round (1 .. 40) {
    my %count;
    $count{$_}++ for map { lc } split /\W+/, join ' ', map { "word" . int rand 500 } 1 .. 300;
    my @order = sort { $count{$b} <=> $count{$a} or $a cmp $b } keys %count;
    (my $text = join ',', @order) =~ s/(\d+)/sprintf('%08x', $1 * 7) x 2/ge;
    my @amounts = sort { $a <=> $b } map { Amount->new(int rand 10**6) } 1 .. 60;
    my $sum = Amount->new(0);
    $sum = $sum + $_ for @amounts;
    tree(5);
    eval { fail(1 + int rand 40) };
}
