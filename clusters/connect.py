"""The only door to adapters: reads rows, decrypts, hands plain values on."""
