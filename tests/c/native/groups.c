/* Groups: all members receive the same messages and changes of the members in the same order. */
#include "check.h"

enum { MESSAGES = 200 };

struct note {
    int process;
    int number;
    char more[100];
};

/* A sum that depends on the order. */
static uint64_t after(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 1099511628211ULL;
}

static void same_order(int me, int size, int flags)
{
    struct weft_group_event event;
    struct note note = {me, 0, ""}, heard;
    int members[64], seen[64] = {0}, group = weft_group_join(flags ? "safe board" : "board", flags), left;
    uint64_t sum = 14695981039346656037ULL, place = 0, theirs;
    char *much = malloc(300000);
    CHECK(group >= 0);
    CHECK(weft_group_join(flags ? "safe board" : "board", flags) == WEFT_ERR_NAME);
    do
        CHECK(weft_group_receive(group, NULL, 0, 20000, &event) == WEFT_GROUP_MEMBERS);
    while (event.members < size);
    CHECK(weft_group_members(group, members, 64) == size);
    for (note.number = 0; note.number < MESSAGES; note.number++)
        CHECK(weft_group_send(group, &note, sizeof note) == 0);
    for (left = size * MESSAGES; left > 0; left--) {
        CHECK(weft_group_receive(group, NULL, 0, -1, &event) == WEFT_ERR_TRUNCATED);
        CHECK(event.length == sizeof heard);
        CHECK(weft_group_receive(group, &heard, sizeof heard, 20000, &event) == WEFT_GROUP_MESSAGE);
        CHECK(event.process == heard.process && heard.number == seen[heard.process]++);
        CHECK(event.place > place || left == size * MESSAGES);
        place = event.place;
        sum = after(sum, (uint64_t)heard.process << 32 | heard.number);
    }
    CHECK(weft_group_receive(group, &heard, sizeof heard, 0, &event) == 0);
    /* One long message of each, with what it has heard. */
    memset(much, me, 300000);
    memcpy(much, &sum, sizeof sum);
    CHECK(weft_group_send(group, much, 300000) == 0);
    for (left = size; left > 0; left--) {
        CHECK(weft_group_receive(group, much, 300000, 20000, &event) == WEFT_GROUP_MESSAGE && event.length == 300000);
        memcpy(&theirs, much, sizeof theirs);
        CHECK(theirs == sum && much[299999] == (char)event.process);
    }
    free(much);
    /* They leave one after the other, and those who stay hear of it. */
    for (left = size; left > 1 && members[size - left] != me; left--)
        CHECK(weft_group_receive(group, NULL, 0, 20000, &event) == WEFT_GROUP_MEMBERS && event.members == left - 1);
    CHECK(weft_group_leave(group) == 0);
    CHECK(weft_group_send(group, "", 0) == WEFT_ERR_ARGUMENT);
}

int main(int count, char **words)
{
    struct weft_group_event event;
    int group = -1;
    CHECK(weft_group_join("early", 0) == WEFT_ERR_STATE);
    CHECK(weft_init(0) == 0);
    if (count > 1 && strcmp(words[1], "killed") == 0) {
        /* The first member, which orders, ends without leave; the others go on. */
        if (weft_me() == 0)
            CHECK((group = weft_group_join("board", 0)) >= 0 && weft_port_open(1) == 1);
        CHECK(weft_me() == 0 || weft_port_open(2) == 2);
        for (int process = 1; weft_me() == 0 && process < weft_size(); process++)
            CHECK(weft_send(process, 2, 0, NULL, 0) == 0);
        if (weft_me() != 0) {
            CHECK(weft_receive(2, 0, 0, NULL, 0, NULL) == 0);
            CHECK((group = weft_group_join("board", 0)) >= 0);
        }
        do
            CHECK(weft_group_receive(group, NULL, 0, 20000, &event) == WEFT_GROUP_MEMBERS);
        while (event.members < weft_size());
        if (weft_me() == 0) {
            for (int process = 1; process < weft_size(); process++)
                CHECK(weft_receive(1, process, 0, NULL, 0, NULL) == 0);
            abort();
        }
        CHECK(weft_send(0, 1, 0, NULL, 0) == 0);
        CHECK(weft_group_receive(group, NULL, 0, 20000, &event) == WEFT_GROUP_MEMBERS);
        CHECK(event.members == weft_size() - 1);
        CHECK(weft_group_send(group, "on", 3) == 0);
        for (int left = weft_size() - 1; left > 0; left--) {
            char room[3];
            CHECK(weft_group_receive(group, room, 3, 20000, &event) == WEFT_GROUP_MESSAGE && room[1] == 'n');
        }
        if (weft_me() == 1)
            puts("ok");
        CHECK(weft_group_leave(group) == 0);
        return weft_finish();
    }
    /* Process 0, whom the others ask for groups, has nothing to do with them at first. */
    CHECK(weft_port_open(5) == 5);
    if (weft_me() != 0) {
        CHECK((group = weft_group_join("others", 0)) >= 0);
        CHECK(weft_group_receive(group, NULL, 0, 20000, &event) == WEFT_GROUP_MEMBERS && event.members >= 1);
        CHECK(weft_group_leave(group) == 0);
        CHECK(weft_send(0, 5, 0, NULL, 0) == 0);
    }
    for (int process = 1; weft_me() == 0 && process < weft_size(); process++)
        CHECK(weft_receive(5, process, 0, NULL, 0, NULL) == 0);
    CHECK(weft_group_join("", 0) == WEFT_ERR_NAME && weft_group_join(NULL, 0) == WEFT_ERR_ARGUMENT);
    CHECK(weft_group_join("board", 64) == WEFT_ERR_ARGUMENT);
    CHECK(weft_group_receive(0, NULL, 0, 0, NULL) == WEFT_ERR_ARGUMENT);
    same_order(weft_me(), weft_size(), 0);
    same_order(weft_me(), weft_size(), WEFT_GROUP_SAFE);
    finish();
    return 0;
}
