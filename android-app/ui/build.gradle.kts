import org.jetbrains.kotlin.gradle.dsl.JvmTarget

plugins {
    alias(libs.plugins.android.application)
    alias(libs.plugins.kotlin.android)
}

android {
    namespace = "dev.fieldmesh.app"
    compileSdk = libs.versions.android.target.get().toInt()
    defaultConfig {
        minSdk = libs.versions.android.min.get().toInt()
        targetSdk = libs.versions.android.target.get().toInt()
        versionCode = 1 // packaging/resources has that of what is handed out
        versionName = libs.versions.project.get()
    }
    buildTypes {
        release {
            isMinifyEnabled = true
            proguardFile("packaging/rules.pro")
        }
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    packaging { jniLibs { useLegacyPackaging = true } }
}

kotlin {
    compilerOptions { jvmTarget = JvmTarget.JVM_1_8 }
}

dependencies {
    implementation(project(":core"))
    implementation(project(":device"))
    implementation(libs.coroutines.android)
    testImplementation(project(path = ":core", configuration = "tests"))
    testImplementation(libs.robolectric)
    testImplementation(libs.kotlin.test)
    testImplementation(libs.junit)
}
