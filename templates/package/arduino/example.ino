// One run of the model @NAME@, compiled by burncc: what it makes of zeros, and in how many microseconds.
#include <Arduino.h>
#include <@NAME@.h>

@ARRAYS@
static void show(const char *name, int i, double value)
{
    Serial.print(name);
    Serial.print(' ');
    Serial.print(i);
    Serial.print(": ");
    Serial.println(value, 6);
}

void setup()
{
    Serial.begin(115200);
}

void loop()
{
    const unsigned long start = micros();
    const int code = @CALL@;
    const unsigned long end = micros();
    if (code) {
        Serial.println(burn_strerror(code));
        return;
    }
@SHOWS@    Serial.print("microseconds: ");
    Serial.println(end - start);
    delay(1000);
}
