/* Packing and unpacking as C programs call it, without a virtual machine: what
 * was packed is unpacked by the same process. Says "ok", and on standard error
 * the lines of three errors. */

#include <pvm3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pvm_vpackf(const char *format, va_list arguments);
int pvm_vunpackf(const char *format, va_list arguments);
extern int pvm_errno, pvm_nerr;
extern char *pvm_errlist[];

#define CHECK(what) ((what) ? (void) 0 : failed(#what, __LINE__))

static void failed(const char *what, int line)
{
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}

/* The message that was packed becomes the one that is unpacked. */
static void turn(void)
{
    CHECK(pvm_setrbuf(pvm_getsbuf()) >= 0 && pvm_getsbuf() == 0);
}

static void every_type(int encoding)
{
    char byte[3] = "ab", byte2[3] = "";
    short s[2] = {-1, 2}, s2[2] = {0};
    unsigned short us[2] = {65535, 2}, us2[2] = {0};
    int i[4] = {-1, 2, 3, 4}, i2[4] = {0};
    unsigned int u = 4000000000u, u2 = 0;
    long l = -5000000000L, l2 = 0;
    unsigned long ul = 18000000000000000000UL, ul2 = 0;
    float f = 1.5f, f2 = 0, c[2] = {1, -2}, c2[2] = {0};
    double d[3] = {2.5, 0, -1e300}, d2[3] = {0}, z[2] = {3, -4}, z2[2] = {0};
    char text[20] = "";
    CHECK(pvm_initsend(encoding) > 0);
    CHECK(pvm_pkbyte(byte, 3, 1) == 0 && pvm_pkshort(s, 2, 1) == 0 && pvm_pkushort(us, 2, 1) == 0);
    CHECK(pvm_pkint(i, 2, 2) == 0 && pvm_pkuint(&u, 1, 1) == 0);
    CHECK(pvm_pklong(&l, 1, 1) == 0 && pvm_pkulong(&ul, 1, 1) == 0);
    CHECK(pvm_pkfloat(&f, 1, 1) == 0 && pvm_pkdouble(d, 2, 2) == 0);
    CHECK(pvm_pkcplx(c, 1, 1) == 0 && pvm_pkdcplx(z, 1, 1) == 0);
    CHECK(pvm_pkstr("a text") == 0 && pvm_pkstr("") == 0);
    turn();
    CHECK(pvm_upkbyte(byte2, 3, 1) == 0 && pvm_upkshort(s2, 2, 1) == 0 && pvm_upkushort(us2, 2, 1) == 0);
    CHECK(pvm_upkint(i2, 2, 2) == 0 && pvm_upkuint(&u2, 1, 1) == 0);
    CHECK(pvm_upklong(&l2, 1, 1) == 0 && pvm_upkulong(&ul2, 1, 1) == 0);
    CHECK(pvm_upkfloat(&f2, 1, 1) == 0 && pvm_upkdouble(d2, 2, 2) == 0);
    CHECK(pvm_upkcplx(c2, 1, 1) == 0 && pvm_upkdcplx(z2, 1, 1) == 0);
    CHECK(!strcmp(byte2, "ab") && s2[0] == -1 && s2[1] == 2 && us2[0] == 65535);
    CHECK(i2[0] == -1 && i2[1] == 0 && i2[2] == 3 && u2 == u && l2 == l && ul2 == ul);
    CHECK(f2 == f && d2[0] == 2.5 && d2[2] == -1e300 && c2[1] == -2 && z2[1] == -4);
    CHECK(pvm_upkstr(text) == 0 && !strcmp(text, "a text") && pvm_upkstr(text) == 0 && !*text);
    CHECK(pvm_upkbyte(text, 0, 1) == 0);
}

static int packed_by_list(const char *format, ...)
{
    va_list arguments;
    int answer;
    va_start(arguments, format);
    answer = pvm_vpackf(format, arguments);
    va_end(arguments);
    return answer;
}

static int unpacked_by_list(const char *format, ...)
{
    va_list arguments;
    int answer;
    va_start(arguments, format);
    answer = pvm_vunpackf(format, arguments);
    va_end(arguments);
    return answer;
}

/* More arguments than registers, of both kinds. */
static void formats(int encoding)
{
    int array[6] = {1, 2, 3, 4, 5, 6}, back[6] = {0}, n = 0, k;
    double d[12];
    float f = 0, complex[2] = {5, 6}, complex2[2];
    long l = 0;
    short h = 0;
    unsigned short hu = 0;
    char c = 0, text[8];
    CHECK(pvm_packf("%+ %d %lf%lf%lf%lf%lf%lf%lf%lf%lf%lf %c %ld %hd %hud %f %s %3.2d %*.*d %x", encoding, 7, 1.0,
                    2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 'x', -6000000000L, -3, 65530, 1.25, "seven", array,
                    2, 3, array, complex) == 0);
    turn();
    CHECK(pvm_unpackf("%d %lf%lf%lf%lf%lf%lf%lf%lf%lf%lf %c %ld %hd %hud %f %s %3.2d %*.*d %x", &n, d, d + 1, d + 2,
                      d + 3, d + 4, d + 5, d + 6, d + 7, d + 8, d + 9, &c, &l, &h, &hu, &f, text, back, 2, 3, back,
                      complex2) == 0);
    for (k = 0; k < 10; k++)
        CHECK(d[k] == k + 1);
    CHECK(n == 7 && c == 'x' && l == -6000000000L && h == -3 && hu == 65530 && f == 1.25 && !strcmp(text, "seven"));
    CHECK(back[0] == 1 && back[1] == 0 && back[2] == 3 && back[3] == 4 && back[4] == 5 && complex2[1] == 6);
    CHECK(packed_by_list("%+%d%lf%2d", encoding, 8, 0.5, array) == 0);
    turn();
    CHECK(unpacked_by_list("%d%lf%2d", &n, d, back) == 0 && n == 8 && d[0] == 0.5 && back[1] == 2);
}

/* What is sent of an XDR message, and of a raw one. */
static void bytes(void)
{
    static const char xdr[] = {'a', 'b', 'c', 0, 0, 0, 0, 1, (char) 0xff, (char) 0xff, (char) 0xff, (char) 0xfe};
    char seen[64];
    int length, tag, tid, one = 1;
    short two = -2;
    int buffer = pvm_initsend(PvmDataDefault);
    CHECK(pvm_pkbyte("abc", 3, 1) == 0 && pvm_pkint(&one, 1, 1) == 0 && pvm_pkshort(&two, 1, 1) == 0);
    CHECK(pvm_bufinfo(buffer, &length, &tag, &tid) == 0 && length == sizeof xdr);
    turn();
    CHECK(pvm_upkbyte(seen, length, 1) == 0 && !memcmp(seen, xdr, sizeof xdr));
    buffer = pvm_initsend(PvmDataRaw);
    CHECK(pvm_pkbyte("abc", 3, 1) == 0 && pvm_pkint(&one, 1, 1) == 0);
    CHECK(pvm_bufinfo(buffer, &length, NULL, NULL) == 0 && length == 7);
}

static void buffers(void)
{
    struct pvmminfo info;
    int n = 5, inner, outer, found;
    CHECK((inner = pvm_mkbuf(PvmDataRaw)) > 0 && pvm_setsbuf(inner) >= 0 && pvm_pkint(&n, 1, 1) == 0);
    CHECK(pvm_getminfo(inner, &info) == 0 && info.len == 4 && info.enc == 0x408c41);
    info.tag = 9, info.wid = 10, info.src = 11, info.dst = 12, info.ctx = 13;
    CHECK(pvm_setminfo(inner, &info) == 0);
    CHECK((outer = pvm_mkbuf(PvmDataDefault)) > 0 && pvm_setsbuf(outer) == inner && pvm_pkmesg(inner) == 0);
    CHECK(pvm_freebuf(inner) == 0);
    turn();
    CHECK((found = pvm_upkmesg()) > 0 && found != outer && pvm_setrbuf(found) == outer);
    CHECK(pvm_getminfo(found, &info) == 0 && info.tag == 9 && info.wid == 10 && info.ctx == 13 && info.dst == 12);
    n = 0;
    CHECK(pvm_upkint(&n, 1, 1) == 0 && n == 5);
    CHECK(pvm_freebuf(found) == 0 && pvm_getrbuf() == 0 && pvm_freebuf(outer) == 0 && pvm_freebuf(0) == 0);
}

static void in_place(void)
{
    int array[4] = {1, 2, 3, 4}, length;
    int buffer = pvm_initsend(PvmDataInPlace);
    CHECK(pvm_pkint(array, 4, 1) == 0 && pvm_bufinfo(buffer, &length, NULL, NULL) == 0 && length == 16);
}

/* Each says a line, until it is asked for silence. */
static void errors(void)
{
    int n, wrong[] = {-1, 12345, 2147483647, -2147483647 - 1};
    size_t k;
    CHECK(pvm_initsend(17) == PvmBadParam && pvm_errno == PvmBadParam);
    CHECK(pvm_freebuf(4711) == PvmNoSuchBuf && !strcmp(pvm_strerror(), "No such buffer"));
    CHECK(pvm_perror("here") == 0 && pvm_nerr == 37 && !strcmp(pvm_errlist[5], "End of buffer"));
    CHECK(pvm_setopt(PvmAutoErr, 0) == 1);
    CHECK(pvm_setrbuf(0) >= 0 && pvm_upkint(&n, 1, 1) == PvmNoBuf);
    CHECK(pvm_setsbuf(0) >= 0 && pvm_pkint(&n, 1, 1) == PvmNoBuf && pvm_pkstr("x") == PvmNoBuf);
    CHECK(pvm_packf("%d", 1) == PvmNoBuf && pvm_unpackf("%d", &n) == PvmNoBuf && pvm_upkmesg() == PvmNoBuf);
    for (k = 0; k < 4; k++) {
        CHECK(pvm_freebuf(wrong[k]) < 0 && pvm_setsbuf(wrong[k]) < 0 && pvm_setrbuf(wrong[k]) < 0);
        CHECK(pvm_bufinfo(wrong[k], &n, &n, &n) < 0 && pvm_pkmesg(wrong[k]) < 0 && pvm_pkmesgbody(wrong[k]) < 0);
    }
    CHECK(pvm_bufinfo(0, &n, &n, &n) == PvmBadParam);
    CHECK(pvm_initsend(PvmDataInPlace) > 0 && pvm_pkstr("x") == PvmNotImpl && pvm_pkint(&n, 1, 2) == PvmNotImpl);
    CHECK(pvm_initsend(PvmDataDefault) > 0 && pvm_pkint(&n, -1, 1) == PvmBadParam);
    CHECK(pvm_pkint(NULL, 1, 1) == PvmBadParam && pvm_pkstr(NULL) == PvmBadParam);
    CHECK(pvm_packf("%q", 1) == PvmBadParam && pvm_packf("%") == PvmBadParam && pvm_packf(NULL) == PvmBadParam);
    CHECK(pvm_packf("%99999999999d", &n) == PvmBadParam);
    n = 1;
    CHECK(pvm_pkint(&n, 1, 1) == 0);
    turn();
    CHECK(pvm_upkint(&n, 1, 1) == 0 && n == 1 && pvm_upkint(&n, 1, 1) == PvmNoData);
    CHECK(pvm_setopt(PvmAutoErr, 1) == 0);
}

static void folds(void)
{
    int kind = PVM_INT, count = 3, info = 1, x[] = {1, 5, -3}, y[] = {2, 4, -4};
    PvmMax(&kind, x, y, &count, &info);
    CHECK(info == 0 && x[0] == 2 && x[1] == 5 && x[2] == -3);
    PvmSum(&kind, x, y, &count, &info);
    CHECK(x[0] == 4 && x[1] == 9 && x[2] == -7);
    kind = PVM_STR;
    PvmProduct(&kind, x, y, &count, &info);
    CHECK(info == PvmBadParam);
}

int main(void)
{
    every_type(PvmDataDefault);
    every_type(PvmDataRaw);
    formats(PvmDataDefault);
    formats(PvmDataRaw);
    bytes();
    buffers();
    in_place();
    errors();
    folds();
    puts("ok");
    return 0;
}
