package dev.fieldmesh.device

import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import dev.fieldmesh.core.agent.Identity
import java.io.IOException
import java.math.BigInteger
import java.security.GeneralSecurityException
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.KeyStoreException
import java.security.PrivateKey
import java.security.ProviderException
import java.security.cert.X509Certificate
import java.security.spec.ECGenParameterSpec
import java.time.Instant
import java.util.Date
import javax.security.auth.x500.X500Principal

private const val STORE = "AndroidKeyStore"
private const val ALIAS = "fieldmesh"

/**
 * The app's key: P-256, made in the Android Keystore at the first call. Its
 * private half never leaves it; it goes with the app's data. What is wrong with
 * the store is a [GeneralSecurityException].
 */
fun keystoreIdentity(): Identity = try {
    val store = KeyStore.getInstance(STORE).apply { load(null) }
    if (!store.containsAlias(ALIAS)) makeKey()
    val certificate = store.getCertificate(ALIAS) as? X509Certificate
    val key = store.getKey(ALIAS, null) as? PrivateKey
    if (certificate == null || key == null) throw KeyStoreException("the key store has no key of the app")
    Identity(certificate, key)
} catch (e: ProviderException) {
    throw KeyStoreException(e.message, e)
} catch (e: IOException) {
    throw KeyStoreException(e.message, e)
}

private fun makeKey() {
    val spec = KeyGenParameterSpec.Builder(ALIAS, KeyProperties.PURPOSE_SIGN)
        .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
        // DIGEST_NONE: TLS stacks hash by themselves and ask for the bare signature.
        .setDigests(KeyProperties.DIGEST_NONE, KeyProperties.DIGEST_SHA256)
        .setCertificateSubject(X500Principal("CN=app"))
        .setCertificateSerialNumber(BigInteger.ONE)
        // Nobody looks at the dates; they are wide because phones' clocks are wrong.
        .setCertificateNotBefore(Date.from(Instant.parse("2000-01-01T00:00:00Z")))
        .setCertificateNotAfter(Date.from(Instant.parse("2100-01-01T00:00:00Z")))
        .build()
    KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, STORE).apply { initialize(spec) }.generateKeyPair()
}
