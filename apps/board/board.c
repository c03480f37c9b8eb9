/*
 * A board where processes of any job pin notes: "board" keeps them until nobody has come for a while, "board pin TEXT" pins
 * one, and "board read" prints all. board.py does the same in Python.
 *
 *     cc board.c -o board $(pkg-config --cflags --libs weft-native)
 *     ./board & ./board pin "a note" && python3 board.py pin "another one" && ./board read
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>

enum { PIN = 1, READ = 2, NOTE = 3, END = 4, LONGEST = 1000, NOTES = 100, PATIENCE_MS = 5000 };

static const char *const NAME = "weft-example-board";

static int sure(int answer)
{
    if (answer < 0) {
        fprintf(stderr, "board: %s\n", weft_error());
        exit(1);
    }
    return answer;
}

static void keep(void)
{
    static char notes[NOTES][LONGEST];
    struct weft_message message;
    int count = 0;
    struct weft_pick any = {sure(weft_port_open_named(NAME)), WEFT_ANY, WEFT_ANY};
    while (sure(weft_select(&any, 1, NULL, 0, PATIENCE_MS, &message)) > 0) {
        int back, pins = message.tag == PIN && count < NOTES && message.length < LONGEST;
        /* Who reads says at which port it waits. What is neither is thrown away. */
        int length = (int)(pins ? LONGEST - 1 : sizeof back);
        void *room = pins ? (void *)notes[count] : &back;
        int got = weft_receive(any.port, message.process, message.tag, room, (size_t)length, NULL);
        count += pins;
        if (message.tag != READ || got < 0 || message.length != sizeof back)
            continue;
        for (int note = 0; note < count; note++)
            sure(weft_send_copy(message.process, back, NOTE, notes[note], strlen(notes[note])));
        sure(weft_send_copy(message.process, back, END, NULL, 0));
    }
}

static void visit(const char *text)
{
    struct weft_message message;
    char note[LONGEST];
    int board, port, mine = sure(weft_port_open(WEFT_ANY));
    sure(weft_port_find(NAME, PATIENCE_MS, &board, &port));
    if (text) {
        sure(weft_send(board, port, PIN, text, strlen(text)));
        return;
    }
    sure(weft_send(board, port, READ, &mine, sizeof mine));
    while (sure(weft_receive(mine, board, WEFT_ANY, note, sizeof note, &message)), message.tag == NOTE)
        printf("%.*s\n", (int)message.length, note);
}

int main(int count, char **words)
{
    sure(weft_init(0));
    if (count == 1)
        keep();
    else if (count == 3 && strcmp(words[1], "pin") == 0)
        visit(words[2]);
    else if (count == 2 && strcmp(words[1], "read") == 0)
        visit(NULL);
    else
        fprintf(stderr, "usage: board [pin TEXT | read]\n");
    sure(weft_finish());
    return 0;
}
