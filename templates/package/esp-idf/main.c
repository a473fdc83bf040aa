// One run of the model @NAME@, compiled by burncc: what it makes of zeros.
#include <stdio.h>

#include "@NAME@.h"

@ARRAYS@
static void show(const char *name, int i, double value)
{
    printf("%s[%d] = %g\n", name, i, value);
}

void app_main(void)
{
    const int code = @CALL@;
    if (code) {
        printf("@NAME@: %s\n", burn_strerror(code));
        return;
    }
@SHOWS@}
