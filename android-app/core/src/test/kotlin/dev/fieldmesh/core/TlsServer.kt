package dev.fieldmesh.core

import com.sun.net.httpserver.HttpExchange
import com.sun.net.httpserver.HttpsConfigurator
import com.sun.net.httpserver.HttpsParameters
import com.sun.net.httpserver.HttpsServer
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.core.agent.Pin
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.Socket
import java.security.Principal
import java.security.PrivateKey
import java.security.cert.CertificateException
import java.security.cert.X509Certificate
import java.util.concurrent.Executors
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLEngine
import javax.net.ssl.X509ExtendedKeyManager
import javax.net.ssl.X509ExtendedTrustManager

/** A TLS server of the JDK that shows [own] and lets in [app] alone, as agents and controllers do. */
class TlsServer(private val own: Identity, private val app: Identity, answer: (HttpExchange) -> Unit) : AutoCloseable {
    private val workers = Executors.newCachedThreadPool()
    private val server = HttpsServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0).apply {
        httpsConfigurator = object : HttpsConfigurator(tls()) {
            override fun configure(params: HttpsParameters) {
                params.setSSLParameters(sslContext.defaultSSLParameters.apply { needClientAuth = true })
            }
        }
        executor = workers
        createContext("/") { answer(it) }
        start()
    }

    val port: Int = server.address.port

    override fun close() {
        server.stop(0)
        workers.shutdownNow()
    }

    private fun tls() = SSLContext.getInstance("TLSv1.3").apply { init(arrayOf(OwnKey()), arrayOf(OnlyTheApp()), null) }

    private inner class OwnKey : X509ExtendedKeyManager() {
        override fun getClientAliases(t: String?, i: Array<Principal>?) = null
        override fun chooseClientAlias(t: Array<String>?, i: Array<Principal>?, s: Socket?) = null
        override fun getServerAliases(t: String?, i: Array<Principal>?) = arrayOf("node")
        override fun chooseServerAlias(t: String?, i: Array<Principal>?, s: Socket?) = "node"
        override fun chooseEngineServerAlias(t: String?, i: Array<Principal>?, e: SSLEngine?) = "node"
        override fun getCertificateChain(alias: String?): Array<X509Certificate> = arrayOf(own.certificate)
        override fun getPrivateKey(alias: String?): PrivateKey = own.privateKey
    }

    private inner class OnlyTheApp : X509ExtendedTrustManager() {
        private fun check(chain: Array<X509Certificate>) {
            if (Pin.of(chain[0]) != app.pin) throw CertificateException("not authorized")
        }

        override fun checkClientTrusted(c: Array<X509Certificate>, a: String?) = check(c)
        override fun checkClientTrusted(c: Array<X509Certificate>, a: String?, s: Socket?) = check(c)
        override fun checkClientTrusted(c: Array<X509Certificate>, a: String?, e: SSLEngine?) = check(c)
        override fun checkServerTrusted(c: Array<X509Certificate>, a: String?) = Unit
        override fun checkServerTrusted(c: Array<X509Certificate>, a: String?, s: Socket?) = Unit
        override fun checkServerTrusted(c: Array<X509Certificate>, a: String?, e: SSLEngine?) = Unit
        override fun getAcceptedIssuers(): Array<X509Certificate> = emptyArray()
    }
}

fun HttpExchange.send(status: Int, text: String) = try {
    responseHeaders.add("Content-Type", "application/json")
    val bytes = text.toByteArray()
    sendResponseHeaders(status, bytes.size.toLong().let { if (it == 0L) -1 else it })
    responseBody.write(bytes)
} finally {
    close()
}
