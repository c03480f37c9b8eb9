/* Fragments with headers, small data, and sets of platforms that they go to. */
#include "check.h"

enum { LENGTH = 50000 };

struct header {
    int from, number;
};

static pan_nsap_p fragments, small, nothing;
static struct tally whole, short_ones, empty;
static pan_msg_p assembled[16];
static int next_fragment[16];

static void on_fragment(pan_fragment_p fragment)
{
    struct header head = *(struct header *)pan_fragment_header(fragment);
    CHECK(head.number == next_fragment[head.from]++);
    CHECK((head.number == 0) == ((pan_fragment_flags(fragment) & PAN_FRAGMENT_FIRST) != 0));
    pan_msg_assemble(assembled[head.from], fragment, 0);
    if (pan_fragment_flags(fragment) & PAN_FRAGMENT_LAST) {
        char *bytes = pan_msg_pop(assembled[head.from], LENGTH, 1);
        CHECK(bytes[0] == 'a' + head.from && bytes[LENGTH - 1] == 'a' + head.from);
        count(&whole);
    }
}

static void on_small(void *data)
{
    long *words = data;
    CHECK(words[0] + words[1] == 42);
    count(&short_ones);
}

static void on_nothing(void *data)
{
    (void)data;
    count(&empty);
}

static void sets(int all)
{
    pan_pset_p set = pan_pset_create(), copy = pan_pset_create();
    CHECK(pan_pset_isempty(set) && pan_pset_find(set, 0) == -1);
    pan_pset_fill(set);
    CHECK(pan_pset_nr_members(set) == all && pan_pset_find(set, all - 1) == all - 1 && pan_pset_find(set, all) == -1);
    pan_pset_del(set, 0);
    CHECK(!pan_pset_ismember(set, 0) && pan_pset_find(set, 0) == (all > 1 ? 1 : -1));
    void *buffer = pan_malloc(pan_pset_size());
    pan_pset_marshall(set, buffer);
    pan_pset_unmarshall(copy, buffer);
    CHECK(pan_pset_nr_members(copy) == all - 1);
    pan_pset_add(copy, 0);
    pan_pset_copy(copy, set);
    CHECK(pan_pset_nr_members(set) == all);
    pan_pset_empty(set);
    CHECK(pan_pset_isempty(set));
    pan_free(buffer);
    pan_pset_clear(set);
    pan_pset_clear(copy);
}

int main(int argc, char **argv)
{
    pan_init(&argc, argv);
    int me = pan_my_pid(), all = pan_nr_platforms(), i, number = 0;
    whole = tally();
    short_ones = tally();
    empty = tally();
    for (i = 0; i < all; i++)
        assembled[i] = pan_msg_create();
    fragments = pan_nsap_create();
    small = pan_nsap_create();
    nothing = pan_nsap_create();
    pan_nsap_fragment(fragments, on_fragment, sizeof(struct header), PAN_NSAP_UNICAST | PAN_NSAP_MULTICAST);
    pan_nsap_small(small, on_small, 2 * sizeof(long), PAN_NSAP_MULTICAST);
    pan_nsap_small(nothing, on_nothing, 0, PAN_NSAP_UNICAST);
    pan_start();
    sets(all);

    pan_pset_p everybody = pan_pset_create();
    pan_pset_fill(everybody);
    pan_msg_p message = pan_msg_create();
    memset(pan_msg_push(message, LENGTH, 1), 'a' + me, LENGTH);
    pan_fragment_p fragment = pan_msg_fragment(message, fragments), copy = pan_fragment_create();
    while (fragment) {
        *(struct header *)pan_fragment_header(fragment) = (struct header){me, number++};
        CHECK(pan_fragment_copy(fragment, copy, 1) == 1 && pan_fragment_length(copy) == pan_fragment_length(fragment));
        if (number == 1)
            pan_comm_multicast_fragment(everybody, copy);
        else
            for (i = 0; i < all; i++)
                pan_comm_unicast_fragment(i, fragment);
        fragment = pan_msg_next(message);
    }
    long words[2] = {40, 2};
    pan_comm_multicast_small(everybody, small, words);
    pan_comm_unicast_small((me + 1) % all, small, words);
    pan_comm_unicast_small((me + 1) % all, nothing, NULL);
    await(&whole, all);
    await(&short_ones, all + 1);
    await(&empty, 1);

    pan_fragment_clear(copy);
    pan_msg_clear(message);
    pan_pset_clear(everybody);
    pan_nsap_clear(fragments);
    say_ok();
    pan_end();
    return 0;
}
